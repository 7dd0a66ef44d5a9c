//! Tools that a provider runs itself, as an agent declares them.

/// A tool that the model's provider runs itself, on its own machines, while it makes a message.
///
/// No call of it passes through this process: no approval is asked, no hook sees it before it runs, and a stop
/// does not end it, but only the request that it is part of. What was used, and what is known of its end, stands in the
/// message's [blocks](crate::message::ProviderBlock), in the events and in the receipt. Give a provider a tool only if
/// all that the tool may do is allowed.
///
/// A model whose wire does not have the tool, or cannot say one of its settings, refuses it when the agent is built.
///
/// ```
/// use safepoint::model::{ProviderTool, WebSearch};
/// let search: ProviderTool = WebSearch::new().max_uses(3).allow_domains(["docs.rs"]).into();
/// assert_eq!(search.name(), "web_search");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderTool {
    /// A search of the web.
    WebSearch(WebSearch),
    /// Programs in a container of the provider.
    CodeExecution,
    /// A search of files that were stored with the provider.
    FileSearch(FileSearch),
}

/// A search of the web by the provider.
///
/// ```
/// use safepoint::model::WebSearch;
/// let search = WebSearch::new().max_uses(3).block_domains(["example.com"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a setting returns the changed value"]
pub struct WebSearch {
    /// How often it may be used in one message; none: as the provider has it.
    pub max_uses: Option<u32>,
    /// Only these domains, if there are any.
    pub allowed_domains: Vec<String>,
    /// Not these domains.
    pub blocked_domains: Vec<String>,
}

impl WebSearch {
    /// A search without limits but the provider's.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits how often it is used in one message.
    pub fn max_uses(mut self, most: u32) -> Self {
        self.max_uses = Some(most);
        self
    }

    /// Searches these domains alone.
    pub fn allow_domains<D: Into<String>>(mut self, domains: impl IntoIterator<Item = D>) -> Self {
        self.allowed_domains.extend(domains.into_iter().map(Into::into));
        self
    }

    /// Leaves these domains out. Not together with allowed ones.
    pub fn block_domains<D: Into<String>>(mut self, domains: impl IntoIterator<Item = D>) -> Self {
        self.blocked_domains.extend(domains.into_iter().map(Into::into));
        self
    }
}

/// A search of files that were stored with the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a setting returns the changed value"]
pub struct FileSearch {
    /// The provider's names of the stores.
    pub stores: Vec<String>,
    /// The most results of one use; none: as the provider has it.
    pub max_results: Option<u32>,
}

impl FileSearch {
    /// A search of these stores, by the provider's names for them (such as `vs_…`).
    pub fn of<S: Into<String>>(stores: impl IntoIterator<Item = S>) -> Self {
        Self { stores: stores.into_iter().map(Into::into).collect(), max_results: None }
    }

    /// Limits the results of one use.
    pub fn max_results(mut self, most: u32) -> Self {
        self.max_results = Some(most);
        self
    }
}

impl From<WebSearch> for ProviderTool {
    fn from(search: WebSearch) -> Self {
        Self::WebSearch(search)
    }
}

impl From<FileSearch> for ProviderTool {
    fn from(search: FileSearch) -> Self {
        Self::FileSearch(search)
    }
}

impl ProviderTool {
    /// Its name, the same on all wires: `web_search`, `code_execution` or `file_search`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::CodeExecution => "code_execution",
            Self::FileSearch(_) => "file_search",
        }
    }

    /// What is wrong with it for every provider.
    #[must_use]
    pub fn flaw(&self) -> Option<&'static str> {
        match self {
            Self::WebSearch(search) if search.max_uses == Some(0) => Some("it may not be used even once"),
            Self::WebSearch(search)
                if !search.allowed_domains.is_empty() && !search.blocked_domains.is_empty() =>
            {
                Some("it has allowed and blocked domains: give one kind")
            }
            Self::FileSearch(search) if search.stores.is_empty() => Some("it has no store to search"),
            Self::FileSearch(search) if search.max_results == Some(0) => Some("it may not find anything"),
            Self::WebSearch(_) | Self::FileSearch(_) | Self::CodeExecution => None,
        }
    }
}

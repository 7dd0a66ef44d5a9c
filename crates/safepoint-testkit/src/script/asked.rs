//! What a request asks, read from any wire's body.

use serde_json::Value;

/// The parts of a request that a script looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The last text of the user.
    pub(crate) user: String,
    /// The results after it.
    pub(crate) results: Vec<String>,
    /// The tools that are offered.
    pub(crate) tools: Vec<String>,
}

impl Asked {
    pub(crate) fn of(body: &Value) -> Self {
        let mut asked = Self::default();
        for tool in body["tools"].as_array().into_iter().flatten() {
            let name = tool["function"]["name"].as_str().or(tool["name"].as_str());
            asked.tools.extend(name.map(ToOwned::to_owned));
            for declared in tool["functionDeclarations"].as_array().into_iter().flatten() {
                asked.tools.extend(declared["name"].as_str().map(ToOwned::to_owned));
            }
        }
        for content in body["contents"].as_array().into_iter().flatten() {
            asked.content(content);
        }
        for item in body["input"].as_array().into_iter().flatten() {
            asked.item(item);
        }
        asked.said(body["input"].as_str().unwrap_or_default());
        for message in body["messages"].as_array().into_iter().flatten() {
            match message["role"].as_str() {
                Some("user") => asked.user_message(&message["content"]),
                Some("tool") => asked.results.push(text_of(&message["content"])),
                _ => {}
            }
        }
        asked
    }

    /// An item of Responses: only the user's own begins anew.
    fn item(&mut self, item: &Value) {
        match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
            ("function_call_output", _) => self.results.push(text_of(&item["output"])),
            ("message", Some("user")) => self.said(&text_of(&item["content"])),
            _ => {}
        }
    }

    /// A content of Gemini: what the user says, or the responses of functions, each an object.
    fn content(&mut self, content: &Value) {
        if content["role"] == "model" {
            return;
        }
        let mut said = String::new();
        for part in content["parts"].as_array().into_iter().flatten() {
            let response = &part["functionResponse"]["response"];
            if let Some(text) = response["output"].as_str().or(response["error"].as_str()) {
                self.results.push(text.to_owned());
            } else if response.is_object() {
                self.results.push(response.to_string());
            }
            said.push_str(part["text"].as_str().unwrap_or_default());
        }
        self.said(&said);
    }

    fn said(&mut self, text: &str) {
        if !text.is_empty() {
            text.clone_into(&mut self.user);
            self.results.clear();
        }
    }

    /// Anthropic puts results into user messages; only text of the user's own begins anew.
    fn user_message(&mut self, content: &Value) {
        let mut said = String::new();
        for block in content.as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_result") => self.results.push(text_of(&block["content"])),
                _ => said.push_str(block["text"].as_str().unwrap_or_default()),
            }
        }
        said.push_str(content.as_str().unwrap_or_default());
        self.said(&said);
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

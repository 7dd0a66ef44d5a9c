//! A crate as its tree of modules, read from its files; nothing is compiled.
//!
//! **Invariants**: what is only for tests or for loom is not in the tree; what a macro of the module makes is, where
//! [`made`] can tell.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use quote::ToTokens as _;

use super::made;
use crate::source::File;

/// One module.
pub(crate) struct Module {
    /// Its names from the root, which has none.
    pub(crate) path: Vec<String>,
    /// The file that its code stands in.
    pub(crate) file: String,
    pub(crate) parent: Option<usize>,
    pub(crate) children: Vec<usize>,
    /// Whether it is declared `pub`.
    pub(crate) is_public: bool,
    pub(crate) items: Vec<syn::Item>,
}

/// A crate.
pub(crate) struct Tree {
    /// The root first.
    pub(crate) modules: Vec<Module>,
}

/// The files of the project, by path.
pub(crate) type Files<'a> = HashMap<&'a str, &'a File>;

impl Tree {
    /// The tree below this root file, `crates/NAME/src/lib.rs` or `main.rs`.
    ///
    /// # Errors
    /// If a file is missing or is not Rust.
    pub(crate) fn read(files: &Files<'_>, root: &str) -> anyhow::Result<Self> {
        let mut tree = Self { modules: Vec::new() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        tree.file(files, root, folder, (Vec::new(), None))?;
        Ok(tree)
    }

    fn file(
        &mut self,
        files: &Files<'_>,
        path: &str,
        folder: &str,
        place: (Vec<String>, Option<usize>),
    ) -> anyhow::Result<()> {
        let file = files.get(path).with_context(|| format!("there is no file {path}"))?;
        let parsed = syn::parse_file(&file.text).with_context(|| format!("{path} is not Rust"))?;
        self.module(files, (path, folder), place, parsed.items)
    }

    fn module(
        &mut self,
        files: &Files<'_>,
        (file, folder): (&str, &str),
        (path, parent): (Vec<String>, Option<usize>),
        items: Vec<syn::Item>,
    ) -> anyhow::Result<()> {
        let this = self.modules.len();
        if let Some(parent) = parent {
            self.modules[parent].children.push(this);
        }
        let items: Vec<syn::Item> = items.into_iter().filter(|item| is_ours(attributes(item))).collect();
        let items = made::with_what_macros_make(items);
        let below: Vec<syn::ItemMod> = items
            .iter()
            .filter_map(|item| match item {
                syn::Item::Mod(module) => Some(module.clone()),
                _ => None,
            })
            .collect();
        self.modules.push(Module {
            path: path.clone(),
            file: file.into(),
            parent,
            children: Vec::new(),
            is_public: parent.is_none(),
            items,
        });
        for module in below {
            let is_public = matches!(module.vis, syn::Visibility::Public(_));
            let child = self.modules.len();
            let name = module.ident.to_string();
            let mut path = path.clone();
            path.push(name.clone());
            let folder = format!("{folder}/{name}");
            match module.content {
                Some((_, items)) => self.module(files, (file, &folder), (path, Some(this)), items)?,
                None => self.file(files, &found(files, &folder)?, &folder, (path, Some(this)))?,
            }
            self.modules[child].is_public = is_public;
        }
        Ok(())
    }
}

fn found(files: &Files<'_>, folder: &str) -> anyhow::Result<String> {
    let path = format!("{folder}.rs");
    if !files.contains_key(path.as_str()) {
        bail!("there is no file {path}");
    }
    Ok(path)
}

/// Whether it is compiled for those who use the crate.
pub(crate) fn is_ours(attributes: &[syn::Attribute]) -> bool {
    const NOT: [&str; 3] = ["test", "loom", "fuzzing"];
    !attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let asked = list.tokens.to_token_stream().to_string().replace(' ', "");
        NOT.iter().any(|not| asked == *not || asked.starts_with(&format!("all({not}")))
    })
}

/// An item's attributes.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

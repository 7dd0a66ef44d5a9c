//! What a crate shows: every public path, and what stands there.

use std::collections::{BTreeMap, BTreeSet};

use quote::quote;
use syn::Visibility;

use super::{
    names::{Leaf, Meant, leaves, name},
    text::line,
    tree::{Tree, attributes, is_ours},
};

/// The public surface of a crate.
#[derive(Debug, Default)]
pub(crate) struct Surface {
    /// Each item by where it is defined, with its public paths.
    found: BTreeMap<(usize, usize), BTreeSet<String>>,
    /// Each item of another crate, with its public paths.
    outside: BTreeMap<String, BTreeSet<String>>,
    /// What is said of them, one fact a line.
    pub(crate) lines: BTreeSet<String>,
    /// The names at the root that are no modules.
    pub(crate) at_root: BTreeSet<String>,
}

impl Surface {
    /// That of this crate.
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut surface = Self::default();
        surface.module(tree, 0, "");
        surface.items(tree);
        surface.impls(tree);
        surface
    }

    /// Types and traits that a program can name, those that are in `raw` alone left out.
    pub(crate) fn types(&self, tree: &Tree) -> usize {
        let is_type = |(module, place): &(usize, usize)| {
            use syn::Item::{Enum, Struct, Trait, Union};
            matches!(tree.modules[*module].items[*place], Enum(_) | Struct(_) | Trait(_) | Union(_))
        };
        let is_seen = |paths: &BTreeSet<String>| paths.iter().any(|path| !path.starts_with("raw::"));
        self.found.iter().filter(|(item, paths)| is_type(item) && is_seen(paths)).count()
    }

    /// The paths of what has more than one, of this crate or of another.
    pub(crate) fn repeated(&self) -> Vec<String> {
        let outside = self.outside.values();
        let twice = self.found.values().chain(outside).filter(|paths| paths.len() > 1);
        twice.map(|paths| paths.iter().cloned().collect::<Vec<_>>().join(", ")).collect()
    }

    fn say(&mut self, path: &str, what: &str) {
        self.lines.insert(format!("{path}: {what}"));
    }

    /// Everything public in a module that can be reached as `path`.
    fn module(&mut self, tree: &Tree, module: usize, path: &str) {
        for (place, item) in tree.modules[module].items.iter().enumerate() {
            match item {
                syn::Item::Use(item) if is_public(&item.vis) && is_ours(&item.attrs) => {
                    leaves(&item.tree).iter().for_each(|leaf| self.leaf(tree, module, path, leaf));
                }
                syn::Item::Mod(item) if is_public(&item.vis) => {
                    let wanted = [item.ident.to_string()];
                    let meant = tree.meant(module, &wanted);
                    meant.iter().for_each(|meant| self.meant(tree, meant, &below(path, &wanted[0])));
                }
                syn::Item::Macro(made) if made.attrs.iter().any(|it| it.path().is_ident("macro_export")) => {
                    let name = made.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                    self.at_root.insert(name.clone());
                    self.say(&name, &format!("macro_rules! {}", line(&made.mac.tokens)));
                }
                other => {
                    if let (Some(name), true) = (name(other), visibility(other).is_some_and(is_public)) {
                        self.meant(tree, &Meant::Item(module, place), &below(path, &name));
                    }
                }
            }
        }
    }

    fn leaf(&mut self, tree: &Tree, module: usize, path: &str, leaf: &Leaf) {
        for meant in tree.meant(module, &leaf.path) {
            match (&leaf.name, &meant) {
                // A private module that a function beside it shares its name with: only the function can be handed on.
                (Some(_), Meant::Module(of)) if !tree.modules[*of].is_public => {}
                (Some(name), _) => self.meant(tree, &meant, &below(path, name)),
                (None, Meant::Module(of)) => self.module(tree, *of, path),
                (None, Meant::Outside(of)) => self.say(&below(path, "*"), &format!("pub use {of}::*")),
                (None, Meant::Item(..)) => {}
            }
        }
    }

    fn meant(&mut self, tree: &Tree, meant: &Meant, path: &str) {
        if !path.contains("::") && !matches!(meant, Meant::Module(_)) {
            self.at_root.insert(path.to_owned());
        }
        match meant {
            Meant::Module(module) => {
                self.say(path, "pub mod");
                self.module(tree, *module, path);
            }
            Meant::Item(module, place) => {
                self.found.entry((*module, *place)).or_default().insert(path.to_owned());
            }
            Meant::Outside(of) => {
                self.outside.entry(of.clone()).or_default().insert(path.to_owned());
                self.say(path, &format!("pub use {of}"));
            }
        }
    }

    /// The shortest path of an item.
    fn path(&self, item: (usize, usize)) -> Option<String> {
        let paths = self.found.get(&item)?;
        paths.iter().min_by_key(|path| (path.matches("::").count(), path.as_str())).cloned()
    }

    fn items(&mut self, tree: &Tree) {
        for (module, place) in self.found.keys().copied().collect::<Vec<_>>() {
            let Some(path) = self.path((module, place)) else { continue };
            let others: Vec<String> =
                self.found[&(module, place)].iter().filter(|other| **other != path).cloned().collect();
            others.iter().for_each(|other| self.say(other, &format!("pub use {path}")));
            self.item(&path, &tree.modules[module].items[place]);
        }
    }

    fn item(&mut self, path: &str, item: &syn::Item) {
        let marks = marks(attributes(item));
        let head = |rest: String| format!("{marks}{rest}");
        match item {
            syn::Item::Fn(item) => self.say(path, &head(format!("pub {}", signature(&item.sig)))),
            syn::Item::Const(item) => {
                self.say(path, &head(constant(&item.ident, &item.ty, &item.expr)));
            }
            syn::Item::Static(item) => {
                let (ident, ty) = (&item.ident, &item.ty);
                self.say(path, &head(line(&quote!(pub static #ident: #ty))));
            }
            syn::Item::Type(item) => {
                let (ident, generics, ty) = (&item.ident, &item.generics, &item.ty);
                self.say(path, &head(line(&quote!(pub type #ident #generics = #ty))));
            }
            syn::Item::Struct(item) => {
                let (ident, generics) = (&item.ident, &item.generics);
                let bounds = &generics.where_clause;
                let hidden =
                    if item.fields.iter().all(|field| is_public(&field.vis)) { "" } else { " { .. }" };
                self.say(path, &head(line(&quote!(pub struct #ident #generics #bounds)) + hidden));
                for (place, field) in
                    item.fields.iter().enumerate().filter(|(_, field)| is_public(&field.vis))
                {
                    let name = field.ident.as_ref().map_or(place.to_string(), ToString::to_string);
                    self.say(&below(path, &name), &line(&field.ty));
                }
            }
            syn::Item::Enum(item) => {
                let (ident, generics) = (&item.ident, &item.generics);
                self.say(path, &head(line(&quote!(pub enum #ident #generics))));
                for variant in &item.variants {
                    let mut variant = variant.clone();
                    variant.attrs.clear();
                    variant.fields.iter_mut().for_each(|field| field.attrs.clear());
                    self.say(&below(path, &variant.ident.to_string()), &line(&variant));
                }
            }
            syn::Item::Trait(item) => self.the_trait(path, &marks, item),
            other => self.say(path, &head(line(other))),
        }
    }

    fn the_trait(&mut self, path: &str, marks: &str, item: &syn::ItemTrait) {
        let (ident, generics, supers) = (&item.ident, &item.generics, &item.supertraits);
        let bounds = &generics.where_clause;
        let colon = item.colon_token.filter(|_| !supers.is_empty());
        self.say(
            path,
            &format!("{marks}{}", line(&quote!(pub trait #ident #generics #colon #supers #bounds))),
        );
        for part in &item.items {
            match part {
                syn::TraitItem::Fn(method) => {
                    let is_given = if method.default.is_some() { " { .. }" } else { "" };
                    let name = method.sig.ident.to_string();
                    self.say(&below(path, &name), &format!("{}{is_given}", signature(&method.sig)));
                }
                syn::TraitItem::Type(of) => {
                    let (ident, bounds) = (&of.ident, &of.bounds);
                    self.say(&below(path, &ident.to_string()), &line(&quote!(type #ident: #bounds)));
                }
                syn::TraitItem::Const(of) => {
                    let (ident, ty) = (&of.ident, &of.ty);
                    self.say(&below(path, &ident.to_string()), &line(&quote!(const #ident: #ty)));
                }
                other => self.say(path, &line(other)),
            }
        }
    }

    /// What is implemented anywhere in the crate for what can be seen, and calls of the crate's own macros that may do so.
    fn impls(&mut self, tree: &Tree) {
        for (module, here) in tree.modules.iter().enumerate() {
            for item in &here.items {
                match item {
                    syn::Item::Impl(item) => self.implementation(tree, module, item),
                    syn::Item::Macro(call) if call.ident.is_none() => {
                        let path = here.path.join("::");
                        let call = line(&call.mac);
                        self.say(&format!("{path}::!"), &call);
                    }
                    _ => {}
                }
            }
        }
    }

    fn implementation(&mut self, tree: &Tree, module: usize, item: &syn::ItemImpl) {
        let syn::Type::Path(of) = &*item.self_ty else { return };
        let names: Vec<String> = of.path.segments.iter().map(|part| part.ident.to_string()).collect();
        let meant = tree.meant(module, &names);
        let path = meant.iter().find_map(|meant| match meant {
            Meant::Item(module, place) => self.path((*module, *place)),
            Meant::Module(_) | Meant::Outside(_) => None,
        });
        let Some(path) = path else { return };
        let (generics, of) = (&item.generics, &item.self_ty);
        let bounds = &generics.where_clause;
        if let Some((not, implemented, _)) = &item.trait_ {
            // By its own name: how a file imports it says nothing.
            let implemented = implemented.segments.last();
            let types = item.items.iter().filter_map(|part| match part {
                syn::ImplItem::Type(part) => Some(format!("{} = {}", part.ident, line(&part.ty))),
                _ => None,
            });
            let types: Vec<String> = types.collect();
            let types = if types.is_empty() { String::new() } else { format!(" {{ {} }}", types.join("; ")) };
            self.say(&path, &(line(&quote!(impl #generics #not #implemented for #of #bounds)) + &types));
            return;
        }
        // Where an impl is for some arguments only, its methods say so.
        let of = line(of);
        let is_plain = names.last().is_some_and(|last| of.trim_start_matches(last.as_str()).is_empty());
        let head = if is_plain { String::new() } else { format!("impl {of}: ") };
        for part in &item.items {
            match part {
                syn::ImplItem::Fn(method) if is_public(&method.vis) && is_ours(&method.attrs) => {
                    let marks = marks(&method.attrs);
                    let said = format!("{head}{marks}pub {}", signature(&method.sig));
                    self.say(&below(&path, &method.sig.ident.to_string()), &said);
                }
                syn::ImplItem::Const(of) if is_public(&of.vis) => {
                    let said = constant(&of.ident, &of.ty, &of.expr);
                    self.say(&below(&path, &of.ident.to_string()), &format!("{head}{said}"));
                }
                _ => {}
            }
        }
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn visibility(item: &syn::Item) -> Option<&Visibility> {
    Some(match item {
        syn::Item::Const(item) => &item.vis,
        syn::Item::Enum(item) => &item.vis,
        syn::Item::Fn(item) => &item.vis,
        syn::Item::Static(item) => &item.vis,
        syn::Item::Struct(item) => &item.vis,
        syn::Item::Trait(item) => &item.vis,
        syn::Item::Type(item) => &item.vis,
        syn::Item::Union(item) => &item.vis,
        _ => return None,
    })
}

/// A constant, with its value where that is short.
fn constant(ident: &syn::Ident, ty: &syn::Type, value: &syn::Expr) -> String {
    const SHORT: usize = 80;
    let declared = line(&quote!(pub const #ident: #ty));
    let value = line(value);
    if value.len() <= SHORT { format!("{declared} = {value}") } else { declared }
}

fn signature(signature: &syn::Signature) -> String {
    let mut signature = signature.clone();
    for input in &mut signature.inputs {
        match input {
            syn::FnArg::Receiver(this) => this.attrs.clear(),
            syn::FnArg::Typed(argument) => {
                argument.attrs.clear();
                if let syn::Pat::Ident(name) = &mut *argument.pat {
                    name.mutability = None;
                }
            }
        }
    }
    line(&signature)
}

/// The attributes that are a promise: what is derived, and what may be added.
fn marks(attributes: &[syn::Attribute]) -> String {
    const SAID: [&str; 5] = ["derive", "non_exhaustive", "cfg", "deprecated", "must_use"];
    let hidden = attributes
        .iter()
        .any(|it| it.path().is_ident("doc") && line(&it.meta).replace(' ', "").contains("(hidden)"));
    let said = attributes.iter().filter(|it| SAID.iter().any(|name| it.path().is_ident(name)));
    let mut marks: Vec<String> =
        said.map(|it| if it.path().is_ident("must_use") { "#[must_use]".into() } else { line(it) }).collect();
    marks.extend(hidden.then(|| "#[doc(hidden)]".to_owned()));
    marks.into_iter().map(|mark| format!("{mark} ")).collect()
}

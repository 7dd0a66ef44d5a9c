//! The tool with which a model keeps a to-do list that its person sees.

use std::sync::Arc;

use safepoint::{
    Tool,
    tool::{EffectClass, from_fn},
};

use crate::render::chat::todo::{LIST_TOOL, TodoList};

/// The most items of a list.
const MOST: usize = 50;

/// It keeps nothing: the screen shows what its last call was given.
pub(crate) fn tool() -> Arc<dyn Tool> {
    let tool = from_fn(
        LIST_TOOL,
        "Shows the user your to-do list, in place of the last one. Use it for work of three steps or more: once at the \
         beginning, and again whenever an item begins or is done, with all items each time.",
        |_cx, list: TodoList| async move {
            Ok(match list.items.len() {
                0..=MOST => format!("The user sees it: {}.", list.progress()),
                many => format!("{many} items are too many: keep it to {MOST}."),
            })
        },
    );
    Arc::new(tool.with(|spec| spec.effect(EffectClass::ReadOnly)))
}

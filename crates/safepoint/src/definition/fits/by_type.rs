//! Without JSON Schema: a tool reads its arguments as a type, takes a task, or takes none. Every other one is refused.

use serde_json::Value;

use crate::{
    contract::tool::ToolSpec,
    definition::subagent::{TASK, task_schema},
};

/// What arguments must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fits {
    /// The type as which the body reads them.
    Type,
    /// An object with a task.
    Task,
    /// Any object.
    Object,
}

impl Fits {
    /// # Errors
    /// The arguments of this tool cannot be checked.
    pub(crate) fn of(spec: &ToolSpec) -> Result<Self, String> {
        if spec.is_typed {
            return Ok(Self::Type);
        }
        if spec.parameters == task_schema() {
            return Ok(Self::Task);
        }
        if spec.parameters == ToolSpec::new("", "").parameters {
            return Ok(Self::Object);
        }
        Err(format!(
            "the arguments of tool `{}` cannot be checked: this program is built without the feature `schema` of \
             `safepoint`; switch it on, or make the tool with `tool::from_spec`, which reads them as a type",
            spec.name
        ))
    }

    /// # Errors
    /// Why the value does not fit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let object = value.as_object();
        let is_task = || object.is_some_and(|it| it.len() == 1 && it.get(TASK).is_some_and(Value::is_string));
        match self {
            Self::Type => Ok(()),
            Self::Task if is_task() => Ok(()),
            Self::Task => Err(format!("it takes an object with the text `{TASK}` alone")),
            Self::Object if object.is_some() => Ok(()),
            Self::Object => Err("it takes an object".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::tool::{Tool as _, from_spec};

    /// S4.11: without schemas a tool whose arguments cannot be checked is refused, and the error says what to do.
    #[test]
    fn a_tool_whose_arguments_cannot_be_checked_is_refused() {
        let spec = || ToolSpec::new("look", "").parameters(json!({"type": "object", "required": ["at"]}));
        let refused = Fits::of(&spec()).unwrap_err();
        assert!(refused.contains("`look`") && refused.contains("`schema`") && refused.contains("from_spec"));
        let typed = from_spec(spec(), |_cx, at: String| async move { Ok(at) });
        assert_eq!(Fits::of(typed.spec()), Ok(Fits::Type));
    }

    /// S4.11: a task and no arguments at all are checked without a schema.
    #[test]
    fn a_task_is_checked_without_a_schema() {
        let task = Fits::of(&ToolSpec::new("clerk", "").parameters(task_schema())).unwrap();
        assert_eq!(task.check(&json!({"task": "look"})), Ok(()));
        for wrong in [json!({"task": 1}), json!({}), json!({"task": "look", "more": 1}), json!("look")] {
            assert!(task.check(&wrong).unwrap_err().contains("`task`"), "{wrong}");
        }
        let none = Fits::of(&ToolSpec::new("clock", "")).unwrap();
        assert_eq!(none.check(&json!({"any": 1})), Ok(()));
        assert!(none.check(&json!([])).is_err());
    }
}

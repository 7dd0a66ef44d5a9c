//! Parameters that the protocol's types do not take: the transport hands their request on as one of a method that it does not know.

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CancelTaskParams, CustomRequest, ErrorCode, GetTaskParams,
        PaginatedRequestParams, UpdateTaskParams,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The refusal: of the parameters, where the method is known.
pub(super) fn refused(request: CustomRequest) -> ErrorData {
    let CustomRequest { method, params, .. } = request;
    let wrong = match method.as_str() {
        "tools/call" => wrong::<CallToolRequestParams>(params),
        "tools/list" => wrong::<PaginatedRequestParams>(params),
        "tasks/get" => wrong::<GetTaskParams>(params),
        "tasks/update" => wrong::<UpdateTaskParams>(params),
        "tasks/cancel" => wrong::<CancelTaskParams>(params),
        _ => None,
    };
    match wrong {
        Some(why) => {
            let said = format!("the parameters of `{method}` are not valid: {why}");
            ErrorData::invalid_params(said, Some(json!({"code": "bad_request"})))
        }
        None => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
    }
}

fn wrong<T: DeserializeOwned>(params: Option<Value>) -> Option<String> {
    serde_json::from_value::<T>(params.unwrap_or_else(|| json!({}))).err().map(|error| error.to_string())
}

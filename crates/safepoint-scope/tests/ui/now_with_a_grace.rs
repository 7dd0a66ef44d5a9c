use safepoint_scope::{StopRequest, secs};
fn main() { let _request = StopRequest::now().within(secs(5)); }

fn main() { let _stop = safepoint_scope::Stop { origin: todo!(), reason: todo!() }; }

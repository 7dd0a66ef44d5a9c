fn main() { let _none = safepoint_scope::SafePoints(0); }

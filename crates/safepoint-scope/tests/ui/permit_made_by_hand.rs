use safepoint_scope::{Effect, Permit};
struct Pay;
impl Effect for Pay { type Announcement = (); }
fn main() { let _permit: Permit<Pay> = Permit { scope: todo!(), effect: todo!() }; }

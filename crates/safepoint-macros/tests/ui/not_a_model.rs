fn main() {
    let _ = safepoint::Agent::builder("gpt-5.2").build();
}

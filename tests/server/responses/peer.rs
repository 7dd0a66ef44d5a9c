//! Experiments.
use super::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore]
async fn peer() {
    let world = World::of(super::questions::payer()).await;
    let (url, token) = (format!("http://{}/openai/v1", world.client.address), world.client.token.clone());
    let status = tokio::task::spawn_blocking(move || {
        std::process::Command::new("/tmp/x-responses/venv/bin/python")
            .arg("/tmp/x-responses/one.py")
            .arg(url)
            .arg(token)
            .status()
    });
    println!("{:?}", status.await);
    world.end().await;
}

//! How the transport stops.

use std::io::ErrorKind;

use super::super::shared::FAREWELL;
use super::refusals::gated;
use super::*;

#[test]
fn a_call_under_way_is_answered_before_the_end() {
    answered_when_stopped_for(Duration::from_millis(20));
}

#[test]
fn a_call_that_ends_long_after_the_stop_is_answered_too() {
    answered_when_stopped_for(FAREWELL + Duration::from_millis(20));
}

/// Ends calls so long after the stop.
fn answered_when_stopped_for(time: Duration) {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let codes = runtime.block_on(async {
        let calls = [0; 2].map(|_| tokio::spawn(gated(client.requests.clone())));
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.tried.load(Ordering::SeqCst) == 4);
        })
        .await
        .unwrap();
        running.transport.stop(PATIENCE);
        tokio::time::sleep(time).await;
        assert!(running.ended.try_recv().is_err());
        running.stage.open();
        let mut codes = Vec::new();
        for call in calls {
            codes.push(call.await.unwrap());
        }
        codes
    });

    assert_eq!(codes, [Some(0); 2]);
    drop(client);
    drop(runtime);
    running.ended.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_call_that_does_not_end_is_left_when_the_grace_is_over() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let ended = runtime.block_on(async {
        let call = tokio::spawn(async move { client.try_send(post(GATED), framed(b"")).await });
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.tried.load(Ordering::SeqCst) == 2);
        })
        .await
        .unwrap();
        running.transport.stop(Duration::from_millis(20));
        call.await.unwrap()
    });

    assert!(ended.is_err());
    running.ended.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_connection_that_is_idle_does_not_hold_up_the_end() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));

    running.transport.stop(Duration::from_secs(3600));

    running.ended.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn nobody_is_accepted_after_the_end() {
    let running = Running::new(Options::default());
    running.transport.stop(Duration::ZERO);
    running.ended.recv_timeout(PATIENCE).unwrap();

    let refused = std::os::unix::net::UnixStream::connect(&running.path);

    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

//! Many at once, and large ones.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiting_are_answered_in_any_order_each_exactly_once() {
    const MANY: usize = 1000;
    let dir = private_dir();
    // On a busy machine all of them may be half-way at once.
    let limits = ServerLimits {
        unfinished: MANY,
        complete_within: LIMIT,
        register_within: LIMIT,
        ..ServerLimits::default()
    };
    let office = Office::open(dir.path(), limits);
    let mut clients = JoinSet::new();
    let acks = Arc::new(AtomicUsize::new(0));
    for n in 0..MANY {
        let (path, acks) = (office.path.clone(), Arc::clone(&acks));
        clients.spawn(async move {
            let mut stream = loop {
                match UnixStream::connect(&path).await {
                    Ok(stream) => break stream,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            stream.write_all(&register(n, None)).await.unwrap();
            one_read(&mut stream).await;
            acks.fetch_add(1, Ordering::SeqCst);
            let mut bytes = Vec::new();
            within(stream.read_to_end(&mut bytes)).await.unwrap();
            (n, bytes)
        });
    }
    office.count(|_| acks.load(Ordering::SeqCst) == MANY).await;
    assert_eq!(office.desk.pending(), MANY);
    let mut order: Vec<usize> = (0..MANY).collect();
    for i in (1..MANY).rev() {
        order.swap(i, rand::random_range(0..=i));
    }
    let mut deliveries = Vec::new();
    for &n in &order {
        let claim = if n % 2 == 0 {
            office.allow(&id(n))
        } else {
            office.deny(&id(n))
        };
        deliveries.push(claim.deliver(Extras::default()));
        assert!(office.desk.find(&id(n)).is_none());
    }
    while let Some(client) = clients.join_next().await {
        let (n, bytes) = client.unwrap();
        let (value, length) = unframe(&bytes).unwrap().expect("an answer");
        assert_eq!(length, bytes.len(), "exactly one answer");
        let behavior = if n % 2 == 0 { "allow" } else { "deny" };
        assert_eq!(value["decision"]["behavior"], behavior);
    }
    drop(deliveries);
    assert_eq!(office.desk.pending(), 0);
    office.close().await;
}

#[tokio::test]
async fn only_a_few_large_requests_are_taken_in_at_once_and_small_ones_pass() {
    let dir = private_dir();
    let limits = ServerLimits {
        large_at_once: 2,
        ..ServerLimits::default()
    };
    let office = Office::open(dir.path(), limits);
    let path = office.path.clone();
    let large = |n: usize| {
        let mut bytes = register(n, None);
        bytes.splice(
            1..1,
            format!("\"more\":\"{}\",", "x".repeat(1 << 20)).into_bytes(),
        );
        bytes
    };
    let mut begun = Vec::new();
    for n in 0..2 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let bytes = large(n);
        stream.write_all(&bytes[..200 * 1024]).await.unwrap();
        begun.push((stream, bytes));
    }
    let mut third = UnixStream::connect(&path).await.unwrap();
    let sending = async {
        third.write_all(&large(2)).await.unwrap();
        one_read(&mut third).await
    };
    let mut sending = std::pin::pin!(sending);
    tokio::select! {
        _ = &mut sending => panic!("there was no room"),
        _ = asked(&path, 3) => {}
    }
    for (stream, bytes) in &mut begun {
        within(stream.write_all(&bytes[200 * 1024..]))
            .await
            .unwrap();
        assert!(one_read(stream).await.contains("Request registered"));
    }
    assert!(within(sending).await.contains("Request registered"));
}

//! The client that makes an app by one scan, against the simulator's
//! registration service.

use std::time::Duration;

use nod::for_tests::feishu::domain::Domain;
use nod::for_tests::feishu::outbound::{Outbound, Proxies};
use nod::for_tests::feishu::registration::{self, AppRegistration, Registered, RegistrationError};
use nod::for_tests::simulator::{OWNER, Options, STRANGER, ScanDecision, ScannerBrand, Simulator};

use super::support::{LIMIT, no_violations, within};

/// Scans the next link as told and gives what the client makes of it.
async fn scan(
    feishu: &Simulator,
    client: &AppRegistration,
    decide: impl FnOnce(String) -> ScanDecision,
) -> Result<Registered, RegistrationError> {
    let offer = client.begin("nod").await.unwrap();
    let query = |name: &str| {
        let mut pairs = offer.link.query_pairs();
        let found = pairs.find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned())
    };
    assert_eq!(query("createOnly").as_deref(), Some("true"));
    let code = query("user_code").unwrap();
    feishu.scan(&decide(code)).unwrap();
    within("a scan", client.wait(&offer)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_makes_an_app_that_works_or_says_no() {
    let options = Options {
        scan_interval: Duration::from_secs(1),
        ..Options::default()
    };
    let feishu = Simulator::start(options).await.unwrap();
    let outbound = Outbound::new(&Proxies::default(), None).unwrap();
    let domain = Domain::parse(&feishu.base_url()).unwrap();
    let client = AppRegistration::new(&outbound, &domain);
    let decision = |user_code: String, approve, user: &str, brand| ScanDecision {
        user_code,
        approve,
        user: Some(user.to_owned()),
        brand,
    };
    let made = scan(&feishu, &client, |code| {
        decision(code, true, "owner", ScannerBrand::Feishu)
    });
    let denied = scan(&feishu, &client, |code| {
        decision(code, false, "owner", ScannerBrand::Feishu)
    });
    let lark = scan(&feishu, &client, |code| {
        decision(code, true, STRANGER, ScannerBrand::Lark)
    });
    let (made, denied, lark) = tokio::join!(made, denied, lark);
    assert_eq!(denied, Err(RegistrationError::Denied));
    let lark = lark.unwrap();
    assert_eq!(lark.brand, registration::Brand::Lark);
    assert_eq!(lark.owner.unwrap().as_str(), STRANGER);
    let made = made.unwrap();
    assert_eq!(made.owner.unwrap().as_str(), OWNER);
    assert_ne!(made.app_id, lark.app_id);
    let again = feishu.registrations().remove(0).user_code;
    let used = feishu.scan(&decision(again, true, OWNER, ScannerBrand::Feishu));
    assert!(used.is_err(), "{used:?}");

    let mut dialer = super::support::dialer(&feishu);
    dialer.app_id = made.app_id;
    dialer.app_secret = made.app_secret;
    let _dialed = within("the new app's connection", dialer.dial())
        .await
        .unwrap();
    assert!(feishu.wait_connections(1, LIMIT).await);
    no_violations(&feishu);
}

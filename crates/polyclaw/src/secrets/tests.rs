use std::os::unix::fs::PermissionsExt;

use super::*;

fn home() -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    (dir, home)
}

fn value(home: &Home, name: &str) -> Option<String> {
    SecretStore::for_home(home).open_all().unwrap().get(name).map(|secret| secret.expose().to_owned())
}

#[test]
fn secret_is_read_back_and_never_stored_in_plain_text() {
    let (_dir, home) = home();
    let secrets = SecretStore::for_home(&home);
    secrets.set("bot", &Secret::new("canary-4711")).unwrap();
    secrets.set("db", &Secret::new("canary-4712")).unwrap();
    assert_eq!(
        (value(&home, "bot"), value(&home, "db")),
        (Some("canary-4711".into()), Some("canary-4712".into()))
    );
    assert_eq!(secrets.names().unwrap(), ["bot", "db"]);
    for path in [home.secrets_file(), home.secrets_key()] {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("canary") && !text.contains(&polyclaw_domain::hex::encode_hex(b"canary")),
            "{text}"
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    secrets.remove("bot").unwrap();
    assert_eq!(value(&home, "bot"), None);
    assert_eq!(secrets.remove("bot").unwrap_err().code, "unknown_secret");
}

#[test]
fn key_rotation_keeps_values_and_removes_old_key() {
    let (_dir, home) = home();
    let secrets = SecretStore::for_home(&home);
    secrets.set("bot", &Secret::new("canary-4711")).unwrap();
    let (old_key, old_store) =
        (fs::read_to_string(home.secrets_key()).unwrap(), fs::read_to_string(home.secrets_file()).unwrap());
    assert_eq!(secrets.rotate_key().unwrap(), 1);
    assert_eq!(value(&home, "bot"), Some("canary-4711".into()));
    assert!(!fs::read_to_string(home.secrets_key()).unwrap().contains(old_key.trim()));
    // The new key does not decrypt the old store.
    fs::write(home.secrets_file(), old_store).unwrap();
    assert_eq!(secrets.open_all().unwrap_err().code, "secrets_locked");
}

#[test]
fn crash_during_key_rotation_leaves_store_readable() {
    let (_dir, home) = home();
    let secrets = SecretStore::for_home(&home);
    secrets.set("bot", &Secret::new("canary-4711")).unwrap();
    let old =
        StoreKey::find_key(&home, &secrets.read_store().unwrap().unwrap().key.id, KeyPlace::File).unwrap();
    // Simulates a crash after the new key is saved and before the new store is written.
    StoreKey::generate().save_key(&home, Some(&old)).unwrap();
    assert_eq!(value(&home, "bot"), Some("canary-4711".into()));
    secrets.rotate_key().unwrap();
    assert_eq!(fs::read_to_string(home.secrets_key()).unwrap().lines().count(), 1);
}

#[test]
fn swapped_secret_entries_do_not_decrypt() {
    let (_dir, home) = home();
    let secrets = SecretStore::for_home(&home);
    secrets.set("a", &Secret::new("value of a")).unwrap();
    secrets.set("b", &Secret::new("value of b")).unwrap();
    let mut sealed = secrets.read_store().unwrap().unwrap();
    let (a, b) = (sealed.secrets["a"].clone(), sealed.secrets["b"].clone());
    sealed.secrets.insert("a".into(), b);
    sealed.secrets.insert("b".into(), a);
    secrets.write_store(&sealed).unwrap();
    let failure = secrets.open_all().unwrap_err();
    assert_eq!(failure.code, "secrets_locked");
    assert!(!failure.message.contains("value of"));
}

#[test]
fn concurrent_secret_changes_are_all_kept() {
    let (_dir, home) = home();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let home = &home;
            scope
                .spawn(move || SecretStore::for_home(home).set(&format!("s{n}"), &Secret::new("x")).unwrap());
        }
    });
    assert_eq!(SecretStore::for_home(&home).open_all().unwrap().len(), 8);
}

#[test]
fn invalid_secret_name_is_not_repeated_in_error() {
    let failure = check_name("sk-canary 4711").unwrap_err();
    assert!(!format!("{failure:?}").contains("canary"));
}

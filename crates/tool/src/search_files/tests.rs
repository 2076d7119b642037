use std::fs;

use super::*;

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("src/.git")).unwrap();
    fs::write(home.path().join("a.txt"), "one\r\ntwo\nfind me\n").unwrap();
    fs::write(home.path().join("src/b.rs"), "fn find() {}\n").unwrap();
    fs::write(home.path().join("src/.git/c"), "find\n").unwrap();
    fs::write(home.path().join("binary"), b"find\0\n").unwrap();
    std::os::unix::fs::symlink("/etc", home.path().join("link")).unwrap();
    home
}

fn arguments(pattern: &str) -> SearchFilesArguments {
    SearchFilesArguments { pattern: pattern.to_owned(), path: None, glob: None, limit: None }
}

fn found(home: &tempfile::TempDir, path: &str, arguments: &SearchFilesArguments) -> String {
    let place = workspace::resolve_path(home.path(), path).unwrap();
    search_place(&place, arguments, &WorkBudget::ample()).unwrap()
}

#[test]
fn matches_are_ordered_and_skip_git_and_binary_files() {
    let home = home();
    assert_eq!(found(&home, "", &arguments("find")), "a.txt:3: find me\nsrc/b.rs:1: fn find() {}\n");
    assert_eq!(found(&home, "src", &arguments("f.nd")), "src/b.rs:1: fn find() {}\n");
    assert_eq!(found(&home, "a.txt", &arguments("^t")), "a.txt:2: two\n");
    assert_eq!(found(&home, "", &arguments("one$")), "a.txt:1: one\n");
    assert_eq!(found(&home, "", &arguments("nothing")), "[no matches]\n");
}

#[test]
fn empty_match_does_not_count_end_of_file() {
    let home = home();
    assert_eq!(found(&home, "a.txt", &arguments("^")).lines().count(), 3);
}

#[test]
fn glob_and_limit_narrow_the_search() {
    let home = home();
    let only_rust = SearchFilesArguments { glob: Some("*.rs".to_owned()), ..arguments("find") };
    assert_eq!(found(&home, "", &only_rust), "src/b.rs:1: fn find() {}\n");
    let relative = SearchFilesArguments { glob: Some("src/*".to_owned()), ..arguments("find") };
    assert_eq!(found(&home, "", &relative), "src/b.rs:1: fn find() {}\n");
    let one = SearchFilesArguments { limit: Some(1), ..arguments("find") };
    assert_eq!(found(&home, "", &one), "a.txt:3: find me\n[only the first 1 matches are shown]\n");
}

#[test]
fn invalid_regex_is_searched_as_plain_text() {
    let home = home();
    let text = found(&home, "", &arguments("find("));
    assert!(text.contains("src/b.rs:1") && text.contains("plain text"), "{text}");
}

#[test]
fn regex_that_needs_too_much_memory_is_refused() {
    let home = home();
    let place = workspace::resolve_path(home.path(), "").unwrap();
    let refused = search_place(&place, &arguments("((a{999}){999}){999}"), &WorkBudget::ample());
    assert!(matches!(refused, Err(Error::Arguments(_))), "{refused:?}");
}

#[test]
fn search_output_is_limited() {
    let home = home();
    fs::write(home.path().join("long"), "x".repeat(5000)).unwrap();
    fs::write(home.path().join("many"), format!("{}\n", "y".repeat(390)).repeat(2000)).unwrap();
    assert!(found(&home, "", &arguments("x{50}")).len() < 500);
    let many = SearchFilesArguments { limit: Some(usize::MAX), ..arguments("y") };
    assert!(found(&home, "", &many).len() < MAX_TEXT_BYTES + 1000);
}

#[test]
fn search_out_of_time_is_reported() {
    let home = home();
    let place = workspace::resolve_path(home.path(), "").unwrap();
    let text = search_place(&place, &arguments("find"), &WorkBudget::empty()).unwrap();
    assert!(text.contains("timed out"), "{text}");
}

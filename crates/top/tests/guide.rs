//! The keys in the guide are those in the code.

#[test]
fn the_guide_has_the_keys() {
    numakit_testing::guide::check_part("docs/guide/top.md", "keys", &numakit_top::keys::guide());
}

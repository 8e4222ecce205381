# nix build .#numakit: builds from this folder, a clone or the source tarball with its crates and page.
{
  description = "See, record and place programs on NUMA machines";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      of = system: nixpkgs.legacyPackages.${system};
      manifest = builtins.fromTOML (builtins.readFile ./Cargo.toml);
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: rec {
        numakit = (of system).rustPlatform.buildRustPackage {
          pname = "numakit";
          version = manifest.workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildAndTestSubdir = "crates/cli";
          nativeBuildInputs = [ (of system).installShellFiles ];
          # Tests need machines with several nodes: cargo xtask test.
          doCheck = false;
          postInstall = ''
            $out/bin/numa man --dir man1
            installManPage man1/*
            for shell in bash zsh fish; do
              $out/bin/numa completions $shell >numa.$shell
            done
            installShellCompletion --cmd numa --bash numa.bash --zsh numa.zsh --fish numa.fish
          '';
          meta = {
            description = "See, record and place programs on NUMA machines";
            license = with nixpkgs.lib.licenses; [
              mit
              asl20
            ];
            platforms = systems;
            mainProgram = "numa";
          };
        };
        default = numakit;
      });
    };
}

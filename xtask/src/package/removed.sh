# Removes what numa of root has kept: the libraries that programs load, and the registry of cores. Both stay while programs hold
# cores: their children load the libraries, too. The homes of users are left alone, and so is /run/numakit-cores, which only an
# administrator creates.
cache=/var/cache/numakit
registry=/dev/shm/numakit-cores

# The kernel's list of locks names the inode of each locked file. If the list cannot be read, cores may be held.
is_held() {
    for file in "$registry" /run/numakit-cores; do
        if [ -e "$file" ]; then
            inode=$(stat -c %i "$file") || return 0
            found=0
            grep -q ":$inode " /proc/locks || found=$?
            [ "$found" -eq 1 ] || return 0
        fi
    done
    return 1
}

# $1: the command that repeats this.
remove_kept() {
    if is_held; then
        echo "numakit: programs hold cores, so $cache and $registry stay; once they have ended: $1"
    else
        rm -rf "$cache"
        [ -d "$registry" ] || rm -f "$registry"
    fi
    echo "numakit: what users have in ~/.cache/numakit stays; packages do not touch homes"
}

#!/bin/sh
# Does what a row of README's table says in a root of its own: this host's /usr below a layer that
# takes what is written, and nothing else of the host. Ends well if Assay was installed and ran,
# and nothing of it was left. Started by `unshare -rm`; its mounts end with it.
#
#   root.sh ROOT PACKAGES SOURCES PROGRAM INSTALL REMOVE
set -eu

root=$1 packages=$2 sources=$3 program=$4 install=$5 remove=$6
mount -t tmpfs none "$root"
cd "$root"
mkdir -p usr upper work etc proc sys dev home packages sources var/lib/dpkg/info var/lib/dpkg/updates var/lib/rpm var/log
mkdir -m 1777 tmp
: >var/lib/dpkg/status
: >program
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$root/upper,workdir=$root/work,userxattr" usr || exit 77
for name in bin sbin lib lib64; do
    [ ! -L "/$name" ] || ln -s "usr/$name" $name
done
cp /etc/passwd /etc/group etc
for place in proc sys dev; do mount --rbind "/$place" $place; done
mount --bind "$packages" packages
mount --bind "$sources" sources
mount --bind "$program" program
for file in packages/*; do ln -s "../$file" home; done

inside() {
    folder=/home
    case $1 in make*) folder=/sources ;; esac
    chroot . env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin PROGRAM=/program sh -ec "cd $folder && $1"
}

inside "$install" || { echo "did not install" >&2; exit 1; }
inside 'PATH=$PATH:$(echo /home/assay-*/bin)
    assay --version
    assay machine
    share=$(dirname "$(command -v assay)")/../share
    gzip -dc $share/man/man1/assay-run.1.gz | grep -q "^.TH ASSAY-RUN"
    test -s $share/doc/assay/LICENSE-MIT -a -s $share/bash-completion/completions/assay'
[ -n "$remove" ] || exit 0
inside "$remove" || { echo "was not removed" >&2; exit 1; }
# Folders that packages share may stay, and what hides an empty folder of this host.
left=$(find upper home opt etc var \( -type f -o -name '*assay*' \) ! -path 'home/assay[-_]0*' ! -path 'var/lib/*' \
    ! -path etc/passwd ! -path etc/group 2>/dev/null || true)
[ -z "$left" ] || { echo "left: $left" >&2; exit 1; }

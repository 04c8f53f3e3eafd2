# baton.mjs is installed, or beside the programs, or in the tree that they were built in.
cd "$(dirname "$0")" || exit 1
for dir in /usr/share/nodejs/baton-agent "$1/../share/nodejs/baton-agent" "$1/../../../agents/node"; do
    if [ -f "$dir/baton.mjs" ]; then
        export BATON_MJS="$dir/baton.mjs"
    fi
done
exec node pricer.mjs

# baton.py is installed, or beside the programs, or in the tree that they were built in.
cd "$(dirname "$0")" || exit 1
for dir in "$1/../share/baton/python" "$1/../../../agents/python"; do
    if [ -f "$dir/baton.py" ]; then
        export PYTHONPATH="$dir"
    fi
done
exec python3 buyer.py

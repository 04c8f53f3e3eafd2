# usage: shop.sh price ITEM | order ITEM COUNT
case $2 in bolts) cents=7 ;; nuts) cents=4 ;; *) cents=2 ;; esac
if [ "$1" = price ]; then
    echo "{\"item\": \"$2\", \"cents\": $cents}"
else
    echo "$BATON_KEY,$2,$3,$(($3 * cents))" >>orders.csv
    echo "ordered $3 $2 for $(($3 * cents)) cents"
fi

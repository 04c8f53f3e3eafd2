#!/bin/sh
# The bank: bank.sh INVOICE IBAN AMOUNT SECONDS books a payment in ledger.csv, and confirms it after so many seconds. It
# books whatever it is asked for, also twice: nothing here protects from that but the step's `effects: unsafe`.
set -eu
[ -e ledger.csv ] || echo "invoice,iban,amount" >ledger.csv
echo "$1,$2,$3" >>ledger.csv
sleep "$4"
echo "paid $3 for $1"

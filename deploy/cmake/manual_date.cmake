# Sets manual_day (2026-12-01) and manual_date (December 1, 2026: mdoc(7) wants no zero before the day): those of
# SOURCE_DATE_EPOCH when it is set, else today's.
string(TIMESTAMP manual_day "%Y-%m-%d" UTC)
string(TIMESTAMP manual_date "%B %d, %Y" UTC)
string(REPLACE " 0" " " manual_date "${manual_date}")

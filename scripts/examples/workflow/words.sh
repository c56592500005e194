# How often each word of a text is in it.
tr -cs 'A-Za-z' '\n' <"$1" | tr 'A-Z' 'a-z' | grep . | sort | uniq -c

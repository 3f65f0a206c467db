# 00a | compile+picture | overwrites a file outside its folder
open('@VICTIM@', 'w').write('changed')

# Hashes, sorting and regular expressions, until it is killed.
while (1) {
    my %table;
    $table{int(rand(100000))} .= "v$_" for 1 .. 20000;
    my @keys = sort { $table{$a} cmp $table{$b} } keys %table;
    my $count = 0;
    for my $key (@keys) { $count++ if $table{$key} =~ /v(\d+)7$/ }
}

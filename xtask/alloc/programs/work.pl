# Hashes of arrays, strings that grow, regular expressions.
use strict;
use warnings;

my (%table, $text);
for my $i (1 .. 60000) {
    my $key = "key" . ($i * 7919 % 20011);
    push @{$table{$key}}, { id => $i, name => "name $i", list => [map { $_ * $i } 1 .. 4] };
    $text .= "$key=$i;";
}
for my $turn (1 .. 3) {
    my %count;
    $count{$1}++ while $text =~ /key(\d+)=/g;
    my @names = sort map { $_->{name} . $turn } map { @$_ } values %table;
    my $joined = join ',', @names;
    my @back = split /,/, $joined;
    die "lost names" if @back != 60000;
}

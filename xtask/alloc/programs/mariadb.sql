create database work;
use work;
create table item (id int primary key, name varchar(64), value int, key (value)) engine=InnoDB;
insert into item select seq, concat('item ', hex(seq * 7919 % 100003)), seq * 7919 % 1009 from seq_1_to_60000;
create table part (item int, text longtext, key (item)) engine=Aria;
insert into part select seq % 60000, repeat(char(97 + seq % 26), seq % 300) from seq_1_to_120000;
update item set value = value + 1 where value % 3 = 1;
update item set value = value - 1 where value % 3 = 2;
create table sums as select item.id % 1009 as part, count(*) as number, sum(length(text)) as bytes,
    group_concat(name order by id separator ',') as names from item join part on part.item = item.id group by 1;
select count(*), sum(number), sum(bytes), md5(group_concat(md5(names) order by part)) from sums into outfile 'result';

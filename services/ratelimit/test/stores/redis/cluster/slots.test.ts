import t from 'tap';
import {
  getSlot,
  nodeAddress,
  parseRedirection,
  parseSlotMap,
} from '../../../../src/stores/redis/cluster/slots.ts';

const source = nodeAddress('10.0.0.9', 7000);

t.test('the slot is the CRC16 of the key, by the check value of XMODEM', async (t) => {
  t.equal(getSlot('123456789'), 0x31c3);
  t.equal(getSlot(''), 0);
});

t.test('only the first hash tag of a key is hashed', async (t) => {
  t.equal(getSlot('mongo_path_/users/{id}_0'), getSlot('id'));
  t.equal(getSlot('{a}{b}'), getSlot('a'));
  t.equal(getSlot('x{a}b}'), getSlot('a'));
  t.equal(getSlot('x{{a}}'), getSlot('{a'));
  for (const whole of ['x{}a', 'x{a', 'x}a{', '{}', '{']) {
    t.not(getSlot(whole), getSlot('a'), whole);
    t.not(getSlot(whole), getSlot(''), whole);
  }
});

t.test('each slot has the first node of its range: the others are replicas', async (t) => {
  const map = parseSlotMap(
    [
      [0, 5460, ['10.0.0.1', 7001, 'id1', []], ['10.0.0.4', 7004, 'id4', []]],
      [5462, 16383, ['10.0.0.2', 7002]],
      [5461, 5461, ['10.0.0.1', 7001]],
    ],
    source,
  );
  t.same(
    map.nodes.map(({ name }) => name),
    ['10.0.0.1:7001', '10.0.0.2:7002'],
  );
  const names = [0, 5460, 5461, 5462, 16383].map((slot) => map.getNode(slot)?.port);
  t.same(names, [7001, 7001, 7001, 7002, 7002]);
});

t.test('a slot without a node is undefined', async (t) => {
  const map = parseSlotMap([[0, 10, ['10.0.0.1', 7001]]], source);
  t.equal(map.getNode(11), undefined);
});

t.test('a slot that moved has the node it moved to', async (t) => {
  const map = parseSlotMap([[0, 16383, ['10.0.0.1', 7001]]], source);
  map.move(7, nodeAddress('10.0.0.2', 7002));
  t.equal(map.getNode(7)?.name, '10.0.0.2:7002');
  t.equal(map.getNode(8)?.name, '10.0.0.1:7001');
});

t.test('a node that does not know its host has the queried one', async (t) => {
  for (const host of ['', null, '?']) {
    t.equal(parseSlotMap([[0, 1, [host, 7001]]], source).getNode(0)?.name, '10.0.0.9:7001');
  }
});

t.test('an invalid slot map is rejected', async (t) => {
  for (const reply of [[], null, 'OK']) {
    t.throws(() => parseSlotMap(reply, source), { message: 'its slot map is empty' });
  }
  const bad = [
    [7],
    [[0, 16384, ['a', 1]]],
    [[-1, 2, ['a', 1]]],
    [[0, 1, ['a', 0]]],
    [[0, 1]],
    [[0, 1, [7, 7]]],
  ];
  for (const reply of bad) {
    t.throws(() => parseSlotMap(reply, source), { message: /CLUSTER SLOTS/ }, JSON.stringify(reply));
  }
});

t.test('MOVED and ASK name the slot and the node', async (t) => {
  t.match(parseRedirection('MOVED 3999 127.0.0.1:6381', source), {
    kind: 'moved',
    slot: 3999,
    node: { host: '127.0.0.1', port: 6381, name: '127.0.0.1:6381' },
  });
  t.match(parseRedirection('ASK 0 redis-1.redis.svc:6379', source), {
    kind: 'ask',
    node: { host: 'redis-1.redis.svc', port: 6379 },
  });
});

t.test('an IPv6 address may come without brackets', async (t) => {
  for (const text of ['MOVED 1 ::1:7001', 'MOVED 1 [::1]:7001']) {
    t.match(parseRedirection(text, source)?.node, { host: '::1', port: 7001, name: '[::1]:7001' }, text);
  }
});

t.test('an omitted host is the host of the queried node', async (t) => {
  t.match(parseRedirection('MOVED 1 :7001', source)?.node, { host: '10.0.0.9', port: 7001 });
  t.match(parseRedirection('MOVED 1 ?:7001', source)?.node, { host: '10.0.0.9', port: 7001 });
});

t.test('other errors are not redirections', async (t) => {
  for (const text of [
    '',
    'MOVED',
    'MOVED x 127.0.0.1:1',
    'MOVED 1 host',
    'MOVED 1 host:0',
    'CLUSTERDOWN MOVED 1 a:1',
  ]) {
    t.equal(parseRedirection(text, source), undefined, text);
  }
});

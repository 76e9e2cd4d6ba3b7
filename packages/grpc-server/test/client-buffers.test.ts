import t from 'tap';
import { type BufferAccount, ClientBuffers } from '../src/client-buffers.ts';

/** A connection that sheds all it holds. */
function openConnection(buffers: ClientBuffers, address: string, shed: string[], name = address) {
  const account: BufferAccount = buffers.open({
    protocol: 'grpc',
    address,
    shed() {
      shed.push(name);
      account.set(0);
    },
  });
  return account;
}

t.test('a connection may hold an eighth, an address half', async (t) => {
  const shed: string[] = [];
  const buffers = new ClientBuffers({ maxBytes: 800 });
  const one = openConnection(buffers, 'a', shed, 'one');
  one.set(100);
  t.same(shed, []);
  one.set(101);
  t.same(shed, ['one']);
  const others = [60, 80, 90, 85, 84].map((bytes, index) => {
    const account = openConnection(buffers, 'a', shed, `other ${index}`);
    account.set(bytes);
    return account;
  });
  t.equal(buffers.bytes, 399);
  others[0]?.set(62);
  t.same(shed, ['one', 'other 2'], 'the one that holds the most');
  t.equal(buffers.bytes, 311);
});

t.test('over the budget, the address that holds the most sheds', async (t) => {
  const shed: string[] = [];
  const buffers = new ClientBuffers({ maxBytes: 800 });
  for (const address of ['a', 'b', 'c'])
    for (let i = 0; i < 3; i += 1) openConnection(buffers, address, shed).set(address === 'b' ? 95 : 80);
  t.equal(buffers.bytes, 765);
  openConnection(buffers, 'small', shed).set(36);
  t.same(shed, ['b', 'b']);
  t.equal(buffers.bytes, 611);
});

t.test('many small clients shed until there is space', async (t) => {
  const shed: string[] = [];
  const buffers = new ClientBuffers({ maxBytes: 8_000 });
  for (let i = 0; i < 1_001; i += 1) openConnection(buffers, `client ${i}`, shed).set(8);
  t.ok(buffers.bytes <= 7_000, `${buffers.bytes} bytes`);
  t.equal(shed.length, 126);
});

t.test('a closed connection holds nothing', async (t) => {
  const buffers = new ClientBuffers({ maxBytes: 800 });
  const account = openConnection(buffers, 'a', []);
  account.set(50);
  account.close();
  t.equal(buffers.bytes, 0);
});

import t from 'tap';
import { compileNetworks, isNetwork } from '../../src/api-keys/networks.ts';

t.test('networks and addresses of both versions are recognized', (t) => {
  for (const text of ['10.0.0.0/8', '192.0.2.1', '0.0.0.0/0', '2001:db8::/32', '::1', '::/0', '10.1.2.3/8'])
    t.ok(isNetwork(text), text);
  for (const text of [
    '',
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    'example.com',
    '10.0.0.0/',
    'fe80::1%eth0',
    '10.0.0.0/8/8',
  ])
    t.notOk(isNetwork(text), text);
  t.end();
});

t.test('an address is in one of the networks, or the key is rejected', (t) => {
  const networks = compileNetworks([
    '10.0.0.0/8',
    '2001:db8::/32',
    '192.0.2.1',
    'written by another program',
  ]);
  for (const address of ['10.255.0.1', '2001:db8:ffff::1', '192.0.2.1'])
    t.ok(networks?.has(address), address);
  for (const address of ['11.0.0.1', '2001:db9::1', '192.0.2.2', 'unknown', ''])
    t.notOk(networks?.has(address), address);
  t.equal(compileNetworks([]), undefined, 'any address');
  t.notOk(compileNetworks(['nonsense'])?.has('10.0.0.1'), 'fails closed');
  t.end();
});

// Scopes of the operator in the settings.
import t from 'tap';
import { parsePermissions } from '../../src/config/oauth-permissions.ts';

t.test('scopes are a list of names, or JSON with texts and clients', async (t) => {
  t.same(parsePermissions(''), []);
  const assigned = (name: string) => ({ name, descriptions: {}, clients: 'assigned' });
  t.same(parsePermissions('orders:read, orders:write'), [assigned('orders:read'), assigned('orders:write')]);
  const texts = { en: 'Read your orders', 'pt-BR': 'Read your orders (Brazil)' };
  const members = {
    'orders:read': { description: texts, clients: 'all' },
    'orders:write': { description: 'Order in your name' },
    stock: {},
  };
  t.same(parsePermissions(JSON.stringify(members)), [
    { name: 'orders:read', descriptions: texts, clients: 'all' },
    { name: 'orders:write', descriptions: { en: 'Order in your name' }, clients: 'assigned' },
    assigned('stock'),
  ]);
});

t.test('invalid scopes are rejected', async (t) => {
  for (const value of [
    'a b',
    'email',
    'a,a',
    '{"a"',
    '{"a":1}',
    '{"a":{"clients":"some"}}',
    '{"a":{"descriptions":{}}}',
    '{"a":{"description":{"english language":"x"}}}',
    '{"a":{"description":{"en":1}}}',
    `{"a":{"description":"${'x'.repeat(256)}"}}`,
    Array.from({ length: 101 }, (_, index) => `s${index}`).join(','),
  ])
    t.equal(parsePermissions(value), undefined, value.slice(0, 60));
});

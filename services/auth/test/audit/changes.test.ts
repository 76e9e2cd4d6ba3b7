import t from 'tap';
import { describeChanges } from '../../src/audit/changes.ts';

t.test('a changed field has its name, and its values before and after', (t) => {
  t.same(
    describeChanges([
      { name: 'email', before: 'ada@example.com', after: 'ada@example.org' },
      { name: 'app_metadata.plan', before: undefined, after: 'pro' },
      { name: 'banned_until', before: new Date(0), after: null },
      { name: 'role', before: 'authenticated', after: 'authenticated' },
      { name: 'phone', before: undefined, after: '' },
    ]),
    {
      changed: ['email', 'app_metadata.plan', 'banned_until'],
      changes: {
        email: { old: 'ada@example.com', new: 'ada@example.org' },
        'app_metadata.plan': { old: null, new: 'pro' },
        banned_until: { old: '1970-01-01T00:00:00.000Z', new: null },
      },
    },
  );
  t.end();
});

t.test('secrets have a name and no values', (t) => {
  for (const name of [
    'password',
    'client_secret',
    'app_metadata.stripe_api_key',
    'user_metadata.accessToken',
    ...['db_passwd', 'pwd', 'stripe_key', 'signingKey', 'auth', 'dsn', 'smtp.pass', 'otp'].map(
      (member) => `metadata.${member}`,
    ),
  ])
    t.same(describeChanges([{ name, before: 'a', after: 'b' }]), { changed: [name], changes: {} }, name);
  for (const name of ['metadata.monkey', 'metadata.keyboard', 'metadata.author', 'metadata.shipping'])
    t.match(describeChanges([{ name, before: 'a', after: 'b' }]), { changes: { [name]: { new: 'b' } } });
  const database = 'postgres://ada:password@db/shop';
  t.same(describeChanges([{ name: 'metadata.database', before: null, after: database }]).changes, {});
  t.end();
});

t.test('members of objects are fields, and secrets among them have no values', (t) => {
  const before = {
    tier: 'a',
    crm: { id: 1, api_key: 'old-key' },
    list: [{ token: 'old-token' }],
    same: { a: 1 },
  };
  const after = {
    tier: 'b',
    crm: { id: 2, api_key: 'new-key' },
    list: [{ token: 'new-token' }],
    same: { a: 1 },
  };
  const traits = describeChanges([{ name: 'metadata', before, after }]);
  t.same(traits, {
    changed: ['metadata.tier', 'metadata.crm.id', 'metadata.crm.api_key', 'metadata.list'],
    changes: { 'metadata.tier': { old: 'a', new: 'b' }, 'metadata.crm.id': { old: 1, new: 2 } },
  });
  t.end();
});

t.test('members that appear, vanish or become something else', (t) => {
  const changed = (before: unknown, after: unknown) => describeChanges([{ name: 'm', before, after }]);
  t.same(changed(null, { a: { b: 1 }, c: '' }), {
    changed: ['m.a.b'],
    changes: { 'm.a.b': { old: null, new: 1 } },
  });
  t.same(changed({ secret: { id: 1 } }, undefined), { changed: ['m.secret.id'], changes: {} });
  t.same(changed({}, null), { changed: ['m'], changes: { m: { old: {}, new: null } } });
  t.same(changed({ token: 'x' }, 'y'), { changed: ['m'], changes: {} }, 'an object that becomes a text');
  t.same(changed([1], [1, 2]), { changed: ['m'], changes: { m: { old: [1], new: [1, 2] } } });
  const deep = (value: string) =>
    Array.from({ length: 40 }).reduce((inner) => ({ a: inner }), { token: value });
  t.match(changed(deep('x'), deep('y')), { changed: [/^m(?:\.a){7}/], changes: {} }, 'deeply nested');
  t.end();
});

t.test('a secret behind a long name has no value', (t) => {
  const { changes } = describeChanges([
    { name: `metadata.${'n'.repeat(80)}_token`, before: 'a', after: 'b' },
  ]);
  t.same(changes, {});
  t.end();
});

t.test('size of an entry is bounded', (t) => {
  const long = { name: 'user_metadata.bio', before: null, after: 'x'.repeat(199) };
  t.same(describeChanges([long]), { changed: ['user_metadata.bio'], changes: {} }, 'a long value');
  const many = Array.from({ length: 1000 }, (_, at) => ({
    name: `user_metadata.${at}${'n'.repeat(100)}`,
    before: 'x'.repeat(150),
    after: 'y'.repeat(150),
  }));
  const traits = describeChanges(many);
  t.equal(traits.changed.length, 50);
  t.ok(JSON.stringify(traits).length < 10_000);
  t.ok(Object.keys(traits.changes).length > 10);
  t.end();
});

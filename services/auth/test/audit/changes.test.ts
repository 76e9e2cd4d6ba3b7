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
  ])
    t.same(describeChanges([{ name, before: 'a', after: 'b' }]), { changed: [name], changes: {} }, name);
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

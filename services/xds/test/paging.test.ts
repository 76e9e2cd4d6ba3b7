import t from 'tap';
import { paginate, parsePageQuery } from '../src/paging.ts';

const named = ['b', 'a', 'c'].map((name): [string, string] => [name, name.toUpperCase()]);

t.test('pages are sorted by name, and each names the next one', async (t) => {
  t.strictSame(paginate(named, { after: '', limit: 2 }), { total: 3, items: ['A', 'B'], next: 'b' });
  t.strictSame(paginate(named, { after: 'b', limit: 2 }), { total: 3, items: ['C'], next: undefined });
  t.strictSame(paginate(named, { after: '', limit: 3 }), {
    total: 3,
    items: ['A', 'B', 'C'],
    next: undefined,
  });
});

t.test('page size is bounded, and an invalid limit is the default', async (t) => {
  const many = Array.from({ length: 1001 }, (_, i): [string, number] => [`${i}`, i]);
  t.equal(paginate(many, { after: '', limit: 1e9 }).items.length, 1000);
  for (const limit of ['0', '-1', '1.5', 'x', ''])
    t.equal(parsePageQuery(new URLSearchParams({ limit }), 20).limit, 20, limit);
  t.strictSame(parsePageQuery(new URLSearchParams('limit=5&after=a%2Fb'), 20), { after: 'a/b', limit: 5 });
});

import t from 'tap';
import { toForm, withQuery } from '../../src/http/url.ts';

const url = 'https://a.test/x';

t.test('names are sorted and spaces encoded as %20', async (t) => {
  t.equal(withQuery(url, { scope: 'a b', a: '1' }, 'brackets'), `${url}?a=1&scope=a%20b`);
});

t.test('everything but letters, digits and -._~ is percent-encoded', async (t) => {
  t.equal(withQuery(url, { a: "-._~!*'()+&=é" }, 'brackets'), `${url}?a=-._~%21%2A%27%28%29%2B%26%3D%C3%A9`);
});

t.test('arrays are encoded with brackets, in order', async (t) => {
  t.equal(withQuery(url, { k: ['b', 'a'] }, 'brackets'), `${url}?k%5B%5D=b&k%5B%5D=a`);
});

t.test('arrays are repeated with arrayFormat repeat', async (t) => {
  t.equal(withQuery(url, { k: ['b', 'a'] }, 'repeat'), `${url}?k=b&k=a`);
});

t.test('resource and audience are repeated in either format', async (t) => {
  t.equal(
    toForm({ resource: ['b', 'a'], audience: ['c'] }, 'brackets').toString(),
    'resource=b&resource=a&audience=c',
  );
});

t.test('an empty array is a bare name', async (t) => {
  t.equal(withQuery(url, { k: [] }, 'brackets'), `${url}?k%5B%5D`);
});

t.test('an object is encoded with its keys', async (t) => {
  t.equal(withQuery(url, { k: { b: 2, a: true } }, 'brackets'), `${url}?k%5Ba%5D=true&k%5Bb%5D=2`);
});

t.test('an existing query is kept, and replaced name by name', async (t) => {
  t.equal(withQuery(`${url}?b=1&a=1#end`, { b: '2' }, 'brackets'), `${url}?a=1&b=2#end`);
});

t.test('null and undefined are not sent, the empty string is', async (t) => {
  t.equal(withQuery(url, { a: null, b: undefined, c: '' }, 'brackets'), `${url}?c=`);
  t.equal(withQuery(url, { a: null }, 'brackets'), url);
});

for (const [what, value] of [
  ['null in an array', ['a', null]],
  ['undefined in an array', ['a', undefined]],
  ['null in an object', { a: null }],
  ['an empty object', {}],
  ['a Date', new Date(0) as never],
  ['a Map', new Map([['a', 1]]) as never],
] as const) {
  t.test(`${what} is an error that names the parameter`, async (t) => {
    const refusal = { name: 'ConfigurationError', message: /`k/ };
    for (const format of ['brackets', 'repeat'] as const) {
      t.throws(() => withQuery(url, { k: value }, format), refusal);
      t.throws(() => toForm({ k: value }, format), refusal);
    }
  });
}

import t from 'tap';
import { redirectUrl } from '../../src/http/redirects.ts';

t.test('parameters go where they are asked to go, in the order of their names', (t) => {
  const parameters = { b: '2 3', a: '&' };
  t.equal(redirectUrl('https://a.example/x', { query: parameters }), 'https://a.example/x?a=%26&b=2+3');
  t.equal(
    redirectUrl('https://a.example/x?y=1', { query: parameters }),
    'https://a.example/x?y=1&a=%26&b=2+3',
  );
  t.equal(redirectUrl('https://a.example/x', { fragment: parameters }), 'https://a.example/x#a=%26&b=2+3');
  t.equal(
    redirectUrl('https://a.example/x#y', { query: { a: '1' }, fragment: { b: '2' } }),
    'https://a.example/x?a=1#b=2',
  );
  t.end();
});

t.test('the target stays as it was typed; a site without a path gets one', (t) => {
  t.equal(redirectUrl('https://a.example', { query: { a: '1' } }), 'https://a.example/?a=1');
  t.equal(
    redirectUrl('http://[0:0:0:0:0:0:0:1]:1/p', { query: { a: '1' } }),
    'http://[0:0:0:0:0:0:0:1]:1/p?a=1',
  );
  t.equal(redirectUrl('app://in', { fragment: { a: '1' } }), 'app://in#a=1');
  t.end();
});

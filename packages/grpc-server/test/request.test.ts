import t from 'tap';
import { readRequestHead, trailerProblem } from '../src/request.ts';
import { encodeMessage } from '../src/status.ts';

const pseudo = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a.B/C'],
] as const;

t.test('a request is read from its fields', async (t) => {
  const head = readRequestHead([
    ...pseudo,
    [':authority', 'x'],
    ['content-type', 'application/grpc+proto'],
    ['te', 'trailers'],
    ['grpc-timeout', '250m'],
    ['grpc-encoding', 'gzip'],
    ['content-length', '12'],
  ]);
  t.match(head, {
    method: 'POST',
    path: '/a.B/C',
    contentType: 'application/grpc+proto',
    encoding: 'gzip',
    timeoutMs: 250,
    contentLength: 12,
  });
});

t.test('timeouts are read in all units', async (t) => {
  const units = { '1H': 3_600_000, '2M': 120_000, '3S': 3000, '4m': 4, '5u': 0.005, '1000000n': 1 };
  for (const [text, expected] of Object.entries(units)) {
    const head = readRequestHead([...pseudo, ['grpc-timeout', text]]);
    t.equal(typeof head === 'string' ? head : Math.round((head.timeoutMs ?? 0) * 1e6) / 1e6, expected, text);
  }
  for (const text of ['', '1', 'S', '-1S', '1.5S', '123456789S', '1s']) {
    t.match(readRequestHead([...pseudo, ['grpc-timeout', text]]), { timeoutMs: undefined }, `'${text}'`);
  }
});

t.test('malformed requests are refused with a reason (RFC 9113 §8)', async (t) => {
  const [method, scheme, path] = pseudo;
  const malformed = {
    'missing :path': [method, scheme],
    'empty :path': [method, scheme, [':path', '']],
    'missing :method': [scheme, path],
    'duplicate :method': [method, method, scheme, path],
    'unknown pseudo-header': [...pseudo, [':status', '200']],
    'pseudo-header after a field': [method, scheme, ['a', 'b'], path],
    'upper case': [...pseudo, ['X-A', 'b']],
    'empty name': [...pseudo, ['', 'b']],
    'line break in a value': [...pseudo, ['a', 'b\r\nc: d']],
    'leading space': [...pseudo, ['a', ' b']],
    'connection-specific': [...pseudo, ['connection', 'close']],
    te: [...pseudo, ['te', 'gzip']],
    'content-length': [...pseudo, ['content-length', '1e3']],
  } as const;
  for (const [name, fields] of Object.entries(malformed)) t.type(readRequestHead(fields), 'string', name);
});

t.test('trailers have no pseudo-headers', async (t) => {
  t.equal(trailerProblem([['a', 'b']]), undefined);
  t.match(trailerProblem([[':path', '/']]), /pseudo-header/);
});

t.test('status messages are percent-encoded and limited', async (t) => {
  t.equal(encodeMessage('plain ~ text'), 'plain ~ text');
  t.equal(encodeMessage('50% ä\n'), '50%25 %C3%A4%0A');
  t.equal(encodeMessage('\ud800'), '%EF%BF%BD');
  t.equal(encodeMessage('x'.repeat(5000)).length, 1000);
});

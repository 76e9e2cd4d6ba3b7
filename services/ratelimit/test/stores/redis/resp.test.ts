import t from 'tap';
import { Pipeline, type RedisReply, RedisReplyError, ReplyReader } from '../../../src/stores/redis/resp.ts';

function readAll(...chunks: readonly (string | Buffer)[]): RedisReply[] {
  const reader = new ReplyReader();
  const replies: RedisReply[] = [];
  for (const chunk of chunks) reader.read(Buffer.from(chunk), (reply) => replies.push(reply));
  return replies;
}

const samples: readonly (readonly [string, RedisReply])[] = [
  [':0\r\n', 0],
  [':1234\r\n', 1234],
  [':-7\r\n', -7],
  [':4611686018427387904\r\n', 2 ** 62],
  [':-9223372036854775808\r\n', -(2 ** 63)],
  ['+PONG\r\n', 'PONG'],
  ['+\r\n', ''],
  ['$-1\r\n', null],
  ['$0\r\n\r\n', ''],
  ['$8\r\na\r\nä€\r\n', 'a\r\nä€'],
  ['*-1\r\n', null],
  ['*0\r\n', []],
  ['*2\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:6379\r\n$-1\r\n', [[0, 1, ['h', 6379]], null]],
];

t.test('replies are read, however they are split into chunks', (t) => {
  const bytes = Buffer.from(samples.map(([text]) => text).join(''));
  const expected = samples.map(([, reply]) => reply);
  t.same(readAll(bytes), expected);
  for (let at = 1; at < bytes.length; at += 1) {
    t.same(readAll(bytes.subarray(0, at), bytes.subarray(at)), expected, `split at ${at}`);
  }
  t.same(readAll(...Array.from(bytes, (byte) => Buffer.from([byte]))), expected, 'byte by byte');
  t.end();
});

t.test('errors are values with the message of Redis', (t) => {
  const [first, second] = readAll('-READONLY You cannot write\r\n:1\r\n');
  t.ok(first instanceof RedisReplyError);
  t.match(first, { message: 'READONLY You cannot write' });
  t.equal(second, 1);
  t.end();
});

t.test('bytes that are not of the protocol are errors', (t) => {
  for (const text of [
    'HTTP/1.1 400 Bad Request\r\n\r\n',
    ':\r\n',
    ':1x\r\n',
    ':1\rx',
    '$x\r\n',
    '%1\r\n',
    ':-\r\n',
  ]) {
    t.throws(() => readAll(text), { message: /does not speak the protocol of Redis/ }, JSON.stringify(text));
  }
  t.end();
});

t.test('replies beyond the limits are errors, before they are complete', (t) => {
  for (const text of [
    `+${'a'.repeat(64 * 1024)}`,
    `+${'a'.repeat(64 * 1024)}\r\n`,
    '$1048577\r\n',
    '$-2\r\n',
    '*16385\r\n',
    '*1\r\n'.repeat(9),
  ]) {
    t.throws(() => readAll(text), { message: 'a reply of the server is too long' }, text.slice(0, 20));
  }
  t.throws(() => readAll(`:${'1'.repeat(30)}`), { message: /invalid number/ });
  t.end();
});

t.test('commands are written with the length of their words in bytes', (t) => {
  const pipeline = new Pipeline();
  pipeline.incrBy('kä', 2);
  pipeline.expire('k', 60);
  pipeline.get('k');
  pipeline.command('AUTH', '', '€');
  t.equal(pipeline.commandCount, 4);
  t.equal(
    pipeline.text,
    '*3\r\n$6\r\nINCRBY\r\n$3\r\nkä\r\n$1\r\n2\r\n*3\r\n$6\r\nEXPIRE\r\n$1\r\nk\r\n$2\r\n60\r\n' +
      '*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n$4\r\nAUTH\r\n$0\r\n\r\n$3\r\n€\r\n',
  );
  t.end();
});

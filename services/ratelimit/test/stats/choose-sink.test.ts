import t from 'tap';
import { chooseSink } from '../../src/stats/choose-sink.ts';

const none = { pushStats: false, taggedPush: false, pull: false, disabled: false };

t.test('one switch chooses one sink, none of them standard output', async (t) => {
  t.strictSame(chooseSink({ ...none, pushStats: true }), { ok: true, sink: 'statsd' });
  t.strictSame(chooseSink({ ...none, pull: true }), { ok: true, sink: 'pull' });
  t.strictSame(chooseSink(none), { ok: true, sink: 'log' });
});

t.test('two switches are refused; push, which is on unless set, is the one to turn off', async (t) => {
  t.strictSame(chooseSink({ ...none, pushStats: true, pull: true }), {
    ok: false,
    turnOff: 'pushStats',
    because: 'pull',
  });
  t.strictSame(chooseSink({ ...none, taggedPush: true, pull: true }), {
    ok: false,
    turnOff: 'taggedPush',
    because: 'pull',
  });
});

t.test('tagged push is refused by itself, because nothing serves it', async (t) => {
  t.strictSame(chooseSink({ ...none, taggedPush: true }), {
    ok: false,
    turnOff: 'taggedPush',
    because: 'not served',
  });
});

t.test('disabling wins over everything, conflicts included', async (t) => {
  t.strictSame(chooseSink({ pushStats: true, taggedPush: true, pull: true, disabled: true }), {
    ok: true,
    sink: undefined,
  });
});

import t from 'tap';
import { chooseSink } from '../../src/stats/choose-sink.ts';

const unset = { pushStats: undefined, taggedPush: false, pull: false, disabled: false };

t.test('without any setting statistics are pushed', async (t) => {
  t.strictSame(chooseSink(unset), { ok: true, sink: 'statsd' });
});

t.test('with push switched off and nothing else on they go to standard output', async (t) => {
  t.strictSame(chooseSink({ ...unset, pushStats: false }), { ok: true, sink: 'log' });
});

t.test('with push switched off they can be pulled', async (t) => {
  t.strictSame(chooseSink({ ...unset, pushStats: false, pull: true }), { ok: true, sink: 'pull' });
});

t.test('pull with push left at its default is an error that names the fix', async (t) => {
  const choice = chooseSink({ ...unset, pull: true });
  t.match(choice, { ok: false, settings: ['USE_PUSHSTATS', 'USE_PULLMETRICS'] });
  t.match(choice, { problem: /USE_PUSHSTATS is true unless set.*set USE_PUSHSTATS=false$/ });
});

t.test('all three at once is an error that leaves one of the others', async (t) => {
  const choice = chooseSink({ ...unset, pushStats: true, taggedPush: true, pull: true });
  t.match(choice, { ok: false, settings: ['USE_PUSHSTATS', 'USE_TAGSTATSD', 'USE_PULLMETRICS'] });
  t.match(choice, {
    problem: /set USE_PUSHSTATS=false and USE_TAGSTATSD=false or USE_PULLMETRICS=false$/,
  });
});

t.test('tagged push and pull exclude each other', async (t) => {
  t.match(chooseSink({ ...unset, pushStats: false, taggedPush: true, pull: true }), {
    ok: false,
    settings: ['USE_TAGSTATSD', 'USE_PULLMETRICS'],
    problem: /set USE_TAGSTATSD=false or USE_PULLMETRICS=false$/,
  });
});

t.test('tagged push alone is refused with what to do instead', async (t) => {
  t.match(chooseSink({ ...unset, pushStats: false, taggedPush: true }), {
    ok: false,
    settings: ['USE_TAGSTATSD'],
    problem: /set USE_TAGSTATSD=false/,
  });
});

t.test('disabling wins over everything, conflicts included', async (t) => {
  t.strictSame(chooseSink({ pushStats: true, taggedPush: true, pull: true, disabled: true }), {
    ok: true,
    sink: undefined,
  });
});

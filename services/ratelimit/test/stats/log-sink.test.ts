import { PassThrough, Writable } from 'node:stream';
import t from 'tap';
import { createLogSink } from '../../src/stats/log-sink.ts';
import type { StatsSnapshot } from '../../src/stats/stats-registry.ts';

const nothing: StatsSnapshot = { counters: [], gauges: [], timers: [] };
const noDrops = { onDropped: () => {} };

t.test('each statistic that changed is a line with its value', async (t) => {
  const output = new PassThrough();
  const sink = createLogSink({ extraTags: { team: 'edge' } }, { output, ...noDrops });
  sink.flush({
    counters: [{ name: 'hits', tags: undefined, value: 10, delta: 4 }],
    gauges: [{ name: 'open', tags: undefined, value: 2 }],
    timers: [{ name: 'time', tags: undefined, timingsMs: [1, 2] }],
  });
  t.equal(
    String(output.read()),
    'hits.__team=edge: 10 (+4)\nopen.__team=edge: 2\ntime.__team=edge: count=2 mean=1.50ms max=2.00ms\n',
  );
});

t.test('a gauge that stood still is not repeated', async (t) => {
  const output = new PassThrough();
  const sink = createLogSink({ extraTags: {} }, { output, ...noDrops });
  const open = (value: number) => ({ ...nothing, gauges: [{ name: 'open', tags: undefined, value }] });
  sink.flush(open(2));
  sink.flush(open(2));
  sink.flush(open(3));
  t.equal(String(output.read()), 'open: 2\nopen: 3\n');
});

t.test('an output that nobody reads loses lines instead of filling memory', async (t) => {
  const output = new Writable({ highWaterMark: 1, write() {} });
  let dropped = 0;
  const sink = createLogSink(
    { extraTags: {} },
    {
      output,
      onDropped: (bytes) => {
        dropped += bytes;
      },
    },
  );
  const hit = { ...nothing, counters: [{ name: 'hits', tags: undefined, value: 1, delta: 1 }] };
  sink.flush(hit);
  sink.flush(hit);
  t.equal(dropped, 'hits: 1 (+1)\n'.length);
});

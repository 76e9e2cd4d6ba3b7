import t from 'tap';
import { parseProcessUsage } from '../process-usage.ts';

t.test('CPU time and memory are read from /proc, whatever the name of the program', async (t) => {
  const stat =
    '77 (a) b (c) S 1 77 77 0 -1 4194304 900 0 1 0 1234 66 0 0 20 0 11 0 5000 1000000 9000 18446744073709551615';
  const status = 'Name:\ta) b (c\nVmPeak:\t  900000 kB\nVmHWM:\t   50000 kB\nVmRSS:\t   40000 kB\n';
  t.same(parseProcessUsage(stat, status), {
    cpuMs: 13_000,
    rssBytes: 40_960_000,
    peakRssBytes: 51_200_000,
  });
});

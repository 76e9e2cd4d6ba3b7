import { defineSettings, findMisspelled, text } from '@tollgate/kit/settings';
import t from 'tap';

const make = (env: string, ...aliases: string[]) => text({ env, aliases, group: 'G', doc: 'D', default: '' });
const spec = defineSettings({
  host: make('HOST'),
  port: make('PORT'),
  url: make('KVSTORE_URL', 'REDIS_URL'),
  flush: make('STATS_FLUSH_INTERVAL'),
});

t.test('a variable one or two letters from a known one is reported with what was meant', (t) => {
  const env = { STATS_FLUSH_INTERVALL: '1s', STATS_FLUSH_INTEVRAL: '1s', REDIS_URI: 'h', kvstore_url: 'h' };
  t.same(findMisspelled(spec, env, ['REDIS_']), [
    { variable: 'STATS_FLUSH_INTERVALL', meant: 'STATS_FLUSH_INTERVAL' },
    { variable: 'STATS_FLUSH_INTEVRAL', meant: 'STATS_FLUSH_INTERVAL' },
    { variable: 'REDIS_URI', meant: 'REDIS_URL' },
    { variable: 'kvstore_url', meant: 'KVSTORE_URL' },
  ]);
  t.end();
});

t.test('known variables and those of other programs are left alone', (t) => {
  const env = {
    PATH: '/bin',
    HOME: '/root',
    HOSTS: 'x',
    REDIS_URL: 'h',
    REDIS_PORT: 'tcp://10.0.0.1',
    LANG: 'C',
  };
  t.same(findMisspelled(spec, env, ['REDIS_', 'KVSTORE_']), []);
  t.end();
});

t.test('a short name counts only behind a prefix of ours', (t) => {
  const short = defineSettings({ tls: make('MC_TLS') });
  t.same(findMisspelled(short, { MC_TSL: 'x' }), []);
  t.same(findMisspelled(short, { MC_TSL: 'x' }, ['MC_']), [{ variable: 'MC_TSL', meant: 'MC_TLS' }]);
  t.end();
});

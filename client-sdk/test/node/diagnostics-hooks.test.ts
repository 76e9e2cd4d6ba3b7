import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import t from 'tap';
import { diagnosticsChannels, diagnosticsHooks } from '../../src/node.ts';

t.test('events are published on their channel while it has subscribers', (t) => {
  const hooks = diagnosticsHooks();
  const heard: unknown[] = [];
  const listener = (event: unknown) => void heard.push(event);
  hooks.onRevoke({ hint: 'access_token' });
  subscribe(diagnosticsChannels.onRevoke, listener);
  t.teardown(() => unsubscribe(diagnosticsChannels.onRevoke, listener));
  hooks.onRevoke({ hint: 'refresh_token' });
  t.same(heard, [{ hint: 'refresh_token' }]);
  t.end();
});

import t from 'tap';
import { tokenStoreContract } from '../../src/testing.ts';
import { memoryTokenStore } from '../../src/tokens/token-store.ts';

const makeStores = () => {
  const store = memoryTokenStore();
  return Promise.resolve([store, store] as const);
};
for (const { name, run } of tokenStoreContract(makeStores)) t.test(name, (t) => t.resolves(run()));

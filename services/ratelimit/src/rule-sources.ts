import type { Lifecycle } from '@tollgate/kit/lifecycle';
import type { Settings } from './config/settings.ts';
import type { Context } from './context.ts';
import { getDecisionOptions } from './decision/options.ts';
import type { Overrides } from './decision/overrides.ts';
import { createStoreFailures } from './decision/store-failure.ts';
import { type RuleLoad, RuleStore, ruleSources } from './rules/rule-store.ts';
import type { CounterStore } from './stores/counter-store.ts';
import { MemoryStore } from './stores/memory/memory-store.ts';
import { Candidates } from './trial/candidates.ts';
import { Trial } from './trial/trial.ts';

export function createRuleStore(settings: Settings, { health, logger, stats }: Context): RuleStore {
  return new RuleStore({
    stats,
    logger,
    health: settings.healthyWithAtLeastOneConfigLoaded
      ? health.component('config', { healthy: false })
      : undefined,
  });
}

/** Undefined where no rules can be on trial. */
export function createTrial(
  settings: Settings,
  { logger, nowMs, nowSeconds, random, stats }: Context,
  { inForce, overrides }: { readonly inForce: CounterStore; readonly overrides: Overrides | undefined },
): Trial | undefined {
  if (settings.candidateRuntimeSubdirectory === '' && settings.configType === 'FILE') return undefined;
  const { backendType, memoryMaxCounters: maxCounters, stopIncrementWhenOverLimit } = settings;
  const options = getDecisionOptions(settings);
  // In one bounded store they would evict counters in force.
  const store = backendType === 'memory' ? new MemoryStore({ nowMs, maxCounters }) : inForce;
  // The rules in force log the failure.
  const silent = logger.child({}, { level: 'silent' });
  const storeFailures = createStoreFailures(settings, { logger: silent, nowMs });
  const counting = { store, stopIncrementWhenOverLimit, storeFailures };
  return new Trial({ ...counting, options, overrides, stats, nowSeconds, random });
}

/** Adds the source of the rules in force, and that of the rules on trial. */
export async function addRuleSources(
  lifecycle: Lifecycle,
  settings: Settings,
  context: Context,
  { rules, trial }: { readonly rules: RuleStore; readonly trial: Trial | undefined },
): Promise<void> {
  const candidates = trial && new Candidates({ ...context, trial });
  await addRuleSource(lifecycle, settings, context, { rules, candidates });
  if (candidates !== undefined && settings.configType === 'FILE') {
    await addCandidateSource(lifecycle, settings, context, candidates);
  }
}

async function addCandidateSource(
  lifecycle: Lifecycle,
  settings: Settings,
  context: Context,
  candidates: Candidates,
): Promise<void> {
  const { createCandidateSource } = await import('./rules/file-source.ts');
  const source = createCandidateSource(settings, context);
  lifecycle.add({
    name: 'candidate rules',
    async start() {
      await source.start((load) => candidates.apply(load));
      await candidates.applied();
    },
    stop: () => source.close(),
  });
}

async function addRuleSource(
  lifecycle: Lifecycle,
  settings: Settings,
  context: Context,
  { rules, candidates }: { readonly rules: RuleStore; readonly candidates: Candidates | undefined },
): Promise<void> {
  const createSource = await ruleSources[settings.configType]();
  const source = createSource(settings, context);
  const onCandidates = (load: RuleLoad): void => candidates?.apply(load);
  lifecycle.add({
    name: 'rules',
    async start({ signal }) {
      if (!settings.forceStartWithoutInitialConfig) {
        await source.start((load) => rules.apply(load), { signal, onCandidates });
        return;
      }
      source
        .start((load) => rules.apply(load), { onCandidates })
        .catch((error: unknown) => lifecycle.fail('rules did not start', error));
    },
    stop: () => source.close(),
  });
}

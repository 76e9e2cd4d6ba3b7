/** Where the service counts. */
export type Backend = 'memory' | 'redis' | 'redis-cluster';

/** How many decisions the service makes, what they cost, and how long callers wait. */
export interface DecisionScenario {
  kind: 'decisions';
  name: string;
  backend: Backend;
  /** Different requests; 1 is the hot key. */
  keys: number;
  rules: number;
  /** Left out unless it is named by `--only`. */
  onlyByName?: boolean;
}

/** How long rules take to load, and what they occupy. */
export interface RulesScenario {
  kind: 'rules';
  name: string;
  rules: number;
}

/** What rules cost without the service: files of several shapes and sizes. */
interface StandAloneScenario {
  kind: 'stand-alone';
  name: string;
}

/** One thing that the bench can measure. */
export type Scenario = DecisionScenario | RulesScenario | StandAloneScenario;

const fewRules = 10;
const manyRules = 100_000;
const manyKeys = 10_000;

/** Everything that the bench measures, in this order: those to be compared follow each other. */
export const scenarios = [
  { kind: 'decisions', name: 'memory-1-key', backend: 'memory', keys: 1, rules: fewRules },
  { kind: 'decisions', name: 'memory-10k-keys', backend: 'memory', keys: manyKeys, rules: fewRules },
  { kind: 'decisions', name: 'memory-100k-rules', backend: 'memory', keys: manyKeys, rules: manyRules },
  { kind: 'decisions', name: 'redis-1-key', backend: 'redis', keys: 1, rules: fewRules },
  { kind: 'decisions', name: 'redis-10k-keys', backend: 'redis', keys: manyKeys, rules: fewRules },
  { kind: 'decisions', name: 'redis-100k-rules', backend: 'redis', keys: manyKeys, rules: manyRules },
  {
    kind: 'decisions',
    name: 'cluster-10k-keys',
    backend: 'redis-cluster',
    keys: manyKeys,
    rules: fewRules,
    onlyByName: true,
  },
  { kind: 'rules', name: 'load-10-rules', rules: fewRules },
  { kind: 'rules', name: 'load-100k-rules', rules: manyRules },
  { kind: 'stand-alone', name: 'rules-stand-alone' },
] as const satisfies readonly Scenario[];

/** What is measured when nothing is named. */
export const usualScenarios: readonly Scenario[] = scenarios.filter(
  (scenario) => !('onlyByName' in scenario),
);

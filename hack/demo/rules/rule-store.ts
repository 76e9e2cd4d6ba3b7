/** A change to a manifest while everything runs. */
export interface RuleEdit {
  /** Name inside hack/demo/config/limits. */
  readonly file: string;
  /** The end of exactly one line of the file. */
  readonly from: string;
  readonly to: string;
}

/** Where the RateLimitConfigs of the demo are kept while it runs. */
export interface RuleStore {
  /** What is about to be done, for somebody who may not want it; undefined where there is nothing to mind. */
  readonly notice?: string;
  /** What one edits to change a rule, of a manifest such as `plans.yaml`. */
  placeOf(file: string): string;
  /** What is said of an edit that was made. */
  readonly edited: string;
  /** The environment in which the management server finds them. */
  readonly xdsEnvironment: Readonly<Record<string, string>>;
  /** Puts all manifests there as they are in hack/demo/config/limits, whatever edits there were. */
  write(): Promise<void>;
  /**
   * Makes an edit, and resolves when it is saved.
   *
   * @throws Error when the text to replace is not there exactly once.
   */
  edit(edit: RuleEdit): Promise<void>;
  /**
   * Leaves nothing of it behind.
   *
   * @throws Error that says what may be left.
   */
  remove(): Promise<void>;
}

/** What a decision may look at. Everything is optional: a rule that needs what is missing has an `onMissingKey`. */
export interface RequestContext {
  readonly clientIp?: string | undefined
  readonly userId?: string | undefined
  readonly apiKey?: string | undefined
  readonly method?: string | undefined
  readonly path?: string | undefined
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

/** A context that a rule's path has matched: its `{name}` segments are known. */
export interface MatchedContext extends RequestContext {
  readonly pathVariables?: Readonly<Record<string, string>> | undefined
  /** Which reading of the path was matched, if there are several. */
  readonly reading?: string | undefined
}
